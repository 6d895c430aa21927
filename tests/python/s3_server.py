# SPDX-License-Identifier: Apache-2.0
"""A small S3 server in memory, for tests: it checks every signature and every MD5, and fails as it is told to.

`fail(request)` is asked for each request (method, key, query); what it returns is done instead: a status and a code, "cut" the
connection, or seconds to wait before answering.
"""

import base64
import hashlib
import hmac
import re
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from xml.sax.saxutils import escape

KEY, SECRET, REGION = "trn-key", "trn-secret/with+signs", "us-east-1"


def signature(handler, method, path, query):
    """Signature Version 4 of a request, from what its own header says was signed."""
    said = handler.headers["Authorization"]
    found = re.match(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d+)/([^/]+)/s3/aws4_request, SignedHeaders=([^,]+), Signature=(\w+)$", said or "")
    if not found:
        return None, ""
    key, day, region, names, given = found.groups()
    lines = "".join(f"{name}:{handler.headers[name].strip()}\n" for name in names.split(";"))
    pairs = sorted(urllib.parse.parse_qsl(query, keep_blank_values=True))
    asked = "&".join(f"{urllib.parse.quote(k, safe='-._~')}={urllib.parse.quote(v, safe='-._~')}" for k, v in pairs)
    canonical = "\n".join([method, path, asked, lines, names, handler.headers["x-amz-content-sha256"]])
    text = "\n".join(["AWS4-HMAC-SHA256", handler.headers["x-amz-date"], f"{day}/{region}/s3/aws4_request", hashlib.sha256(canonical.encode()).hexdigest()])
    secret = ("AWS4" + SECRET).encode()
    for part in (day, region, "s3", "aws4_request"):
        secret = hmac.new(secret, part.encode(), "sha256").digest()
    return key, given == hmac.new(secret, text.encode(), "sha256").hexdigest()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def say(self, status, body=b"", **headers):
        body = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def error(self, status, code, text=""):
        self.say(status, f"<Error><Code>{code}</Code><Message>{text}</Message></Error>")

    def handle_one(self, method):
        store = self.server.store
        path, _, query = self.path.partition("?")
        ask = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        bucket, _, key = urllib.parse.unquote(path).lstrip("/").partition("/")
        what = store.fail(method, key, ask) if store.fail else None
        if what == "cut":
            self.rfile.read(min(1000, int(self.headers.get("Content-Length") or 0)))
            self.close_connection = True
            return
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        store.asked.append((method, key, ask))
        if isinstance(what, float):
            time.sleep(what)
        elif what:
            return self.error(*what)
        who, good = signature(self, method, path, query)
        if who != KEY:
            return self.error(403, "InvalidAccessKeyId", "no such key")
        if not good:
            return self.error(403, "SignatureDoesNotMatch", "signed otherwise")
        if body and base64.b64encode(hashlib.md5(body).digest()).decode() != self.headers["Content-MD5"]:
            return self.error(400, "BadDigest")
        if bucket != store.bucket:
            return self.error(404, "NoSuchBucket")
        with store.lock:
            getattr(self, method.lower())(store, key, ask, body)

    def get(self, store, key, ask, body):
        if "uploads" in ask:
            rows = [f"<Upload><Key>{escape(k)}</Key><UploadId>{i}</UploadId></Upload>" for i, (k, _) in store.uploads.items() if k.startswith(ask["prefix"])]
            return self.say(200, f"<ListMultipartUploadsResult>{''.join(rows)}</ListMultipartUploadsResult>")
        if "list-type" in ask:
            names = sorted(k for k in store.objects if k.startswith(ask["prefix"]) and k > ask.get("continuation-token", ""))
            page, more = names[: store.page], names[store.page :]
            rows = [f"<Contents><Key>{escape(k)}</Key></Contents>" for k in page]
            token = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more else ""
            return self.say(200, f"<ListBucketResult>{token}{''.join(rows)}</ListBucketResult>")
        if "uploadId" in ask:
            parts = store.uploads.get(ask["uploadId"], (None, {}))[1]
            rows = [f"<Part><PartNumber>{n}</PartNumber><ETag>&quot;{hashlib.md5(b).hexdigest()}&quot;</ETag></Part>" for n, b in sorted(parts.items())]
            return self.say(200, f"<ListPartsResult><IsTruncated>false</IsTruncated>{''.join(rows)}</ListPartsResult>")
        return self.say(200, store.objects[key]) if key in store.objects else self.error(404, "NoSuchKey")

    def put(self, store, key, ask, body):
        if "uploadId" in ask:
            if ask["uploadId"] not in store.uploads:
                return self.error(404, "NoSuchUpload")
            store.uploads[ask["uploadId"]][1][int(ask["partNumber"])] = body
        elif self.headers["If-None-Match"] == "*" and key in store.objects:
            return self.error(412, "PreconditionFailed")
        else:
            store.objects[key] = body
        self.say(200, ETag=f'"{hashlib.md5(body).hexdigest()}"')

    def post(self, store, key, ask, body):
        if "uploads" in ask:
            name = f"upload&{len(store.asked)}"
            store.uploads[name] = (key, {})
            return self.say(200, f"<InitiateMultipartUploadResult><UploadId>{escape(name)}</UploadId></InitiateMultipartUploadResult>")
        if ask["uploadId"] not in store.uploads:
            return self.error(404, "NoSuchUpload")
        key, parts = store.uploads.pop(ask["uploadId"])
        said = re.findall(rb"<PartNumber>(\d+)</PartNumber><ETag>\"(\w+)\"</ETag>", body)
        if [(int(n), tag.decode()) for n, tag in said] != [(n, hashlib.md5(b).hexdigest()) for n, b in sorted(parts.items())]:
            return self.error(400, "InvalidPart")
        store.objects[key] = b"".join(b for _, b in sorted(parts.items()))
        self.say(200, "<CompleteMultipartUploadResult/>")

    def delete(self, store, key, ask, body):
        if "uploadId" in ask:
            store.uploads.pop(ask["uploadId"], None)
        else:
            store.objects.pop(key, None)
        self.say(204)


for verb in ("GET", "PUT", "POST", "DELETE"):
    setattr(Handler, "do_" + verb, lambda self, verb=verb: self.handle_one(verb))


class Server(ThreadingHTTPServer):
    """What is there survives stop() and start(), as a server's disk does."""

    daemon_threads = True

    def __init__(self, bucket="runs", port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.store = self
        self.bucket, self.objects, self.uploads, self.asked = bucket, {}, {}, []
        self.fail, self.page, self.lock = None, 3, threading.Lock()
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def variables(self):
        return {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.server_address[1]}", "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": REGION}
