import { subscribe } from "node:diagnostics_channel";
import { EventEmitter } from "node:events";

// An answer to a call that was given up meanwhile becomes a stream of its own, which nobody reads:
// an error of its connection would end the process. Imported by all that speaks HTTP/2.
subscribe("http2.client.stream.created", (message) => {
  if (typeof message !== "object" || message === null || !("stream" in message)) return;
  if (message.stream instanceof EventEmitter) message.stream.on("error", () => {});
});
