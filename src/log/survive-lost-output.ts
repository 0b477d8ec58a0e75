/**
 * Lets a process go on whose output cannot be written, since the reader of its pipe has ended
 * (`| head`) or the disk of its file is full: only what is written meanwhile is lost.
 */
export function surviveLostOutput(...streams: readonly NodeJS.WritableStream[]): void {
  for (const stream of streams) stream.on("error", () => {});
}
