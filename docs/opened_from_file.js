// A browser lets no page that was opened from a file read the index of the search: say so where one would search.
if (location.protocol === "file:") {
  const told = "Search needs HTTP: python -m http.server -d site";
  for (const field of document.querySelectorAll("input[type=search], [data-md-component=search-query]")) {
    field.placeholder = told;
    field.title = told;
  }
  const note = document.createElement("p");
  note.id = "opened-from-file";
  note.style.cssText = "margin: 0; padding: .4rem 1.2rem; font-size: .7rem; text-align: center; opacity: .8";
  note.textContent = `This page was opened from a file, where browsers do not let it search. ${told}`;
  document.body.prepend(note);
}
