/* Where pages are opened as files, browsers start no workers. There the code of a worker, which is that of the search,
   runs in a frame of the page instead. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    #inside;
    #loaded;

    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.#inside = frame.contentWindow;
      this.#inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = this.#inside.document.createElement("script");
      script.src = address;
      this.#loaded = new Promise((resolve) => script.addEventListener("load", resolve));
      this.#inside.document.body.append(script);
    }

    postMessage(data) {
      this.#loaded.then(() => this.#inside.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
