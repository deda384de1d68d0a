// A TCP proxy that loses answers: what a bad network does, on order.
import { once } from "node:events";
import { connect, createServer } from "node:net";

export class Proxy {
  /** How many answers are to be lost: the request is passed on, the connection cut when the answer begins. */
  losing = 0;
  lost = 0;
  sockets = new Set();

  static async before(port) {
    const proxy = new Proxy();
    proxy.server = createServer((near) => proxy.pass(near, port));
    proxy.server.listen(0, "127.0.0.1");
    await once(proxy.server, "listening");
    proxy.url = `http://127.0.0.1:${proxy.server.address().port}`;
    return proxy;
  }

  pass(near, port) {
    const far = connect(port, "127.0.0.1");
    for (const socket of [near, far]) {
      socket.on("error", () => {});
      socket.on("close", () => {
        near.destroy();
        far.destroy();
        this.sockets.delete(near);
      });
    }
    this.sockets.add(near);
    near.on("data", (data) => far.write(data));
    far.on("data", (data) => {
      if (this.losing > 0) {
        this.losing -= 1;
        this.lost += 1;
        near.destroy();
      } else near.write(data);
    });
  }

  /** Cuts what is open now. */
  cut() {
    for (const socket of this.sockets) socket.destroy();
  }

  async close() {
    this.cut();
    this.server.close();
    await once(this.server, "close");
  }
}
