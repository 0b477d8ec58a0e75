import { ServiceError } from "../contract/errors.ts";
import { formatBytes } from "../contract/text/format-bytes.ts";
import { slowestDownload } from "../contract/limits.ts";

/** The fewest bytes that may arrive within a time. */
export interface SlowestPace {
  readonly bytes: number;
  readonly seconds: number;
}

export interface Pace extends Disposable {
  /** Aborted with a ServiceError model_source_slow. */
  readonly signal: AbortSignal;
  count(bytes: number): void;
}

/** Watches that a download goes on, from its first moment and over lost connections. */
export function watchPace(url: string, slowest: SlowestPace = slowestDownload): Pace {
  const abort = new AbortController();
  let bytes = 0;
  const timer = setInterval(() => {
    if (bytes < slowest.bytes) abort.abort(slowSourceError(url, bytes, slowest));
    bytes = 0;
  }, slowest.seconds * 1000).unref();
  return {
    signal: abort.signal,
    count: (more) => {
      bytes += more;
    },
    [Symbol.dispose]: () => clearInterval(timer),
  };
}

function slowSourceError(url: string, bytes: number, { seconds, bytes: least }: SlowestPace) {
  const arrived = `${formatBytes(bytes)} of "${url}" arrived within ${seconds} s`;
  return new ServiceError("model_source_slow", `${arrived}; the least is ${formatBytes(least)}`);
}
