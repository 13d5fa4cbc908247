"""One router per resource of the native API, the web page, and code that routers share."""
