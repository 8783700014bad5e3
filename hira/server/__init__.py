"""hira as a server: an endpoint that speaks the OpenAI chat API, and a page on which runs can be watched."""
