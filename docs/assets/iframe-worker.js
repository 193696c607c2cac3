// Browsers start no worker for a page that was opened from the disk: there, the search runs in a hidden frame.
if (location.protocol === "file:")
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.frame = Object.assign(document.createElement("iframe"), {
        hidden: true,
        srcdoc: "<!doctype html><script>postMessage = data => frameElement.answer(data)</script><script src=\"" + url + "\"></script>",
      })
      this.frame.answer = data => this.dispatchEvent(new MessageEvent("message", { data }))
      this.ready = new Promise(done => this.frame.addEventListener("load", done))
      document.documentElement.append(this.frame)
    }
    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })))
    }
    terminate() {
      this.frame.remove()
    }
  }
