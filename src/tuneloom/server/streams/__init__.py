"""Server-sent events: what listeners are told, made once for all of them."""
