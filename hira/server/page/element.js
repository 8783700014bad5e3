// Elements from data. Text stays text: nothing here reads markup.

export function element(name, { text, ...attributes } = {}, children = []) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(key, "");
    else if (value !== false && value != null) made.setAttribute(key, value);
  }
  if (text != null) made.textContent = text;
  for (const child of children) made.append(child);  // one by one: as arguments of one call they can be too many
  return made;
}

export const figure = value => new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 }).format(value);
export const money = value => `$${value.toFixed(value < 0.1 ? 4 : 2)}`;
export const seconds = value => value < 100 ? `${value.toFixed(1)} s` : `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;

export function ago(time) {
  const passed = Date.now() / 1000 - time;
  for (const [size, name] of [[86400, "d"], [3600, "h"], [60, "min"]]) if (passed >= size) return `${Math.floor(passed / size)} ${name}`;
  return "now";
}
