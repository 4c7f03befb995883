"""What all pages of enc have in common: one file of HTML with all that it needs, for light and dark."""

import html
import json
from typing import Any

# No page may ask anybody for anything; pictures are drawn by its own script.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
BASE_STYLE = """
:root { color-scheme:light dark; --back:#fff; --ink:#1b1f24; --quiet:#59636e; --line:#d1d9e0;
  --card:#f6f8fa; }
@media (prefers-color-scheme: dark) { :root { --back:#0f1318; --ink:#e8ecf0; --quiet:#9aa5b1; --line:#333c46;
  --card:#171d24; } }
* { box-sizing:border-box; }
body { margin:0; background:var(--back); color:var(--ink);
  font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif; }
main { max-width:90rem; margin:0 auto; padding:1rem; }
h1 { font-size:1.3rem; margin:0 0 .4rem; overflow-wrap:anywhere; }
h2 { font-size:1.15rem; margin:0; }
.quiet { color:var(--quiet); font-size:.9rem; }
"""


def make_page(title: str, style: str, body: str) -> str:
    """The whole file; ``title`` is text, ``style`` comes after ``BASE_STYLE``."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>{html.escape(title)}</title>
<style>{BASE_STYLE}{style}</style>
</head>
<body>
{body}
</body>
</html>
"""


def embed_data(name: str, value: Any) -> str:
    """``value`` as JSON in an element that a script of the page finds by ``name``."""
    data = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    data = data.replace("<", "\\u003c")  # no tag of the user's ends the element
    return f'<script type="application/json" id="{name}">{data}</script>'
