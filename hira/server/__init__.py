"""hira as a server: an endpoint that speaks OpenAI's chat and Responses APIs, and a page that shows runs live."""
