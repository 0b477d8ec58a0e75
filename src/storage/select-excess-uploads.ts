import { limits } from "../contract/limits.ts";
import { partialUploadOwner } from "./partial-upload-path.ts";

interface InterruptedUpload {
  readonly name: string;
  readonly bytes: number;
  /** When it was written last. */
  readonly modifiedAt: Date;
}

/**
 * The interrupted uploads of a project that are too much. Whoever keeps most loses the oldest, in
 * turn: an owner with no more than an equal share of the limits loses nothing, whatever others send.
 */
export function selectExcessUploads<Upload extends InterruptedUpload>(
  uploads: readonly Upload[],
): Upload[] {
  const newestFirst = uploads.toSorted((a, b) => Number(b.modifiedAt) - Number(a.modifiedAt));
  const owners = [...Map.groupBy(newestFirst, ({ name }) => partialUploadOwner(name)).values()];
  const excess: Upload[] = [];
  const removeWhileOver = (limit: number, measure: (own: readonly Upload[]) => number) => {
    while (measure(owners.flat()) > limit) {
      // Of equals the one whose newest is the oldest is the last.
      const largest = owners.toSorted((a, b) => measure(a) - measure(b)).at(-1);
      const oldest = largest?.pop();
      if (oldest === undefined) throw new Error("No upload is left that could be too much");
      excess.push(oldest);
    }
  };
  removeWhileOver(limits.partialUploads, (own) => own.length);
  removeWhileOver(limits.partialUploadBytes, (own) =>
    own.reduce((sum, { bytes }) => sum + bytes, 0),
  );
  return excess;
}
