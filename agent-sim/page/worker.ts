// The run beside the page: the simulator, compiled to WebAssembly, in a worker. The page talks to it as it
// does to a server, and says of every message that it has arrived.

import init, { Engine } from "./engine.js";

try {
  await init();
  const engine = new Engine(JSON.stringify([...new URLSearchParams(location.search)]));
  onmessage = (event: MessageEvent<string | null>) => {
    if (event.data === null) engine.seen();
    else engine.hear(event.data);
  };
} catch (error) {
  const why = `The simulator cannot be loaded: ${error}. Load the page again, or try another browser.`;
  postMessage(JSON.stringify({ is: "over", why }));
}
