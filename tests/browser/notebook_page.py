"""A page that shows widgets as anywidget does, and the connection to their Python side in this process.

What Jupyter does with comms is done here over HTTP: the model's messages are framed as the length of a header, the
header as JSON, and the buffers. A kernel handles them one after another on one thread, which can be busy with a cell.
"""

import json
import queue
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ipywidgets import Widget

_POLL_S = 2.0
_PAGE = r"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>A notebook</title><link rel="icon" href="data:,">
<style>
  body { font: 20px serif; color: #333; background: #fff } button { text-transform: uppercase; color: red }
  .banner, .shell, .tile { display: none }
</style></head><body><main><h1>A notebook</h1><input aria-label="A cell"><div id="views"></div></main>
<script type="module">
const decode = (buffer) => {
  const size = new DataView(buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
  let at = 4 + size;
  const buffers = head.sizes.map((each) => { const view = new DataView(buffer, at, each); at += each; return view; });
  return { ...head, buffers };
};
const encode = (head, buffers) => {
  const bytes = new TextEncoder().encode(JSON.stringify({ ...head, sizes: buffers.map((each) => each.byteLength) }));
  const size = new DataView(new ArrayBuffer(4));
  size.setUint32(0, bytes.byteLength, true);
  return new Blob([size, bytes, ...buffers]);
};
class Model {
  constructor(id, state) {
    Object.assign(this, { id, state, changed: {}, listeners: new Map(), last: Promise.resolve() });
  }
  get(name) { return this.state[name]; }
  set(name, value) {
    this.changed[name] = value;
    this.put(name, value);
  }
  put(name, value) {
    if (JSON.stringify(this.state[name]) === JSON.stringify(value)) return;
    this.state[name] = value;
    this.trigger(`change:${name}`);
  }
  post(head, buffers = []) {
    if (window.isDead) throw new Error("no kernel");
    this.last = this.last.then(() => fetch(`/send?model=${this.id}`, { method: "POST", body: encode(head, buffers) }));
  }
  save_changes() {
    this.post({ data: { method: "update", state: this.changed, buffer_paths: [] } });
    this.changed = {};
  }
  send(content, _callbacks, buffers = []) { this.post({ data: { method: "custom", content } }, buffers); }
  on(name, call) { this.listeners.set(name, [...(this.listeners.get(name) ?? []), call]); }
  off(name, call) { this.listeners.set(name, (this.listeners.get(name) ?? []).filter((each) => each !== call)); }
  trigger(name, ...values) { for (const call of this.listeners.get(name) ?? []) call(...values); }
  count() { return [...this.listeners.values()].reduce((sum, each) => sum + each.length, 0); }
}
const models = {};
const views = [];
window.models = models;
window.openView = async (id) => {
  if (!models[id]) {
    models[id] = new Model(id, await (await fetch(`/state?model=${id}`)).json());
    void poll(models[id]);
  }
  const el = document.createElement("div");
  document.getElementById("views").append(el);
  // anywidget makes a module of each widget, and never another one of a model.
  models[id].module ??= import(URL.createObjectURL(new Blob([models[id].get("_esm")], { type: "text/javascript" })));
  const { default: widget } = await models[id].module;
  const close = await widget.render({ model: models[id], el });
  return views.push(() => { close(); el.remove(); }) - 1;
};
window.closeView = (number) => views[number]();
async function poll(model) {
  while (!window.isDead) {
    const answer = await fetch(`/poll?model=${model.id}`);
    if (answer.status !== 200) continue;
    const { data, buffers } = decode(await answer.arrayBuffer());
    if (data.method === "custom") model.trigger("msg:custom", data.content, buffers);
    else for (const [name, value] of Object.entries(data.state ?? {})) model.put(name, value);
  }
}
window.isReady = true;
</script></body></html>"""


class NotebookPage:
    """A page that shows widgets of this process; also a context manager.

    Attributes:
        url: its address.
        sent: the number of messages to each widget's views, by the id of its model.
    """

    def __init__(self) -> None:
        self.sent: dict[str, int] = {}
        self._widgets: dict[str, Widget] = {}
        self._outboxes: dict[str, queue.Queue[bytes]] = {}
        self._inbox: queue.Queue[tuple[str, bytes] | None] = queue.Queue()
        self._is_idle = threading.Event()
        self._is_idle.set()
        self._kernel = threading.Thread(target=self._handle_all, daemon=True)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> "NotebookPage":
        self._kernel.start()
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._is_idle.set()
        self._inbox.put(None)
        self._server.shutdown()
        self._server.server_close()
        self._kernel.join(5)

    def add(self, widget: Widget) -> str:
        """Connect a widget, and return the id of its model."""
        name = str(widget.model_id)
        self._widgets[name], self._outboxes[name], self.sent[name] = widget, queue.Queue(), 0

        def publish(_kind: str, data: Any = None, metadata: Any = None, buffers: Any = None, **_keys: Any) -> None:
            del metadata
            self.sent[name] += 1
            self._outboxes[name].put(_frame({"data": data or {}}, [bytes(each) for each in buffers or ()]))

        widget.comm.publish_msg = publish
        return name

    def run_cell(self) -> None:
        """Begin a cell, so that messages wait."""
        self._is_idle.clear()

    def end_cell(self) -> None:
        """End the cell."""
        self._is_idle.set()

    def _handle_all(self) -> None:
        while (message := self._inbox.get()) is not None:
            self._is_idle.wait()
            name, body = message
            head, buffers = _unframe(body)
            self._widgets[name]._handle_msg({"content": {"data": head["data"]}, "buffers": buffers, "metadata": {}})

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        page = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                name = parse_qs(parts.query).get("model", [""])[0]
                if parts.path == "/":
                    self._answer(_PAGE.encode(), "text/html")
                elif parts.path == "/state":
                    self._answer(json.dumps(page._widgets[name].get_state()).encode(), "application/json")
                else:
                    try:
                        self._answer(page._outboxes[name].get(timeout=_POLL_S), "application/octet-stream")
                    except queue.Empty:
                        self._answer(b"", "text/plain", status=204)

            def do_POST(self) -> None:
                name = parse_qs(urlsplit(self.path).query)["model"][0]
                page._inbox.put((name, self.rfile.read(int(self.headers["content-length"]))))
                self._answer(b"", "text/plain")

            def _answer(self, body: bytes, media_type: str, status: int = 200) -> None:
                self.send_response(status)
                self.send_header("content-type", media_type)
                if status != 204:
                    self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_arguments: object) -> None:
                return

        return Handler


def _frame(head: dict[str, Any], buffers: Sequence[bytes]) -> bytes:
    text = json.dumps({**head, "sizes": [len(each) for each in buffers]}).encode()
    return len(text).to_bytes(4, "little") + text + b"".join(buffers)


def _unframe(body: bytes) -> tuple[dict[str, Any], list[memoryview]]:
    size = int.from_bytes(body[:4], "little")
    head = json.loads(body[4 : 4 + size])
    at, buffers = 4 + size, []
    for each in head["sizes"]:
        buffers.append(memoryview(body)[at : at + each])
        at += each
    return head, buffers
