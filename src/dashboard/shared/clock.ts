import { signal } from "@preact/signals";

const tickMs = 1000;
let skewMs = 0;

/** The service's time, which this machine's clock may differ from; it moves on every second. */
export const serviceNow = signal(Date.now());

export function readServiceTime(): number {
  return Date.now() + skewMs;
}

/** Takes the service's time from an answer. */
export function setServiceTime(at: string): void {
  skewMs = Date.parse(at) - Date.now();
  serviceNow.value = readServiceTime();
}

setInterval(() => {
  if (!document.hidden) serviceNow.value = readServiceTime();
}, tickMs);
