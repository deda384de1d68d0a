"""Makes a container in Azurite: `make_container.py PORT NAME`, with its well-known account."""
import base64
import hashlib
import hmac
import sys
import urllib.request
from email.utils import formatdate

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

port, name = sys.argv[1:]
headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-12-02"}
lines = ["PUT"] + [""] * 11 + [f"{key}:{value}" for key, value in sorted(headers.items())]
lines += [f"/{ACCOUNT}/{ACCOUNT}/{name}", "restype:container"]
digest = hmac.new(base64.b64decode(KEY), "\n".join(lines).encode(), hashlib.sha256).digest()
headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"
url = f"http://127.0.0.1:{port}/{ACCOUNT}/{name}?restype=container"
urllib.request.urlopen(urllib.request.Request(url, method="PUT", headers=headers), timeout=10)
