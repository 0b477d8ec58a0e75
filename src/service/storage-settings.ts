import { z } from "zod";
import { number } from "../settings/environment-values.ts";

/** Environment variables that say how the service uses its disk. */
export const storageSettings = {
  MOS_DISK_RESERVE_BYTES: number
    .pipe(z.int().min(0))
    .default(256 * 1024 ** 2)
    .describe(
      [
        "Bytes of the disk that uploads, results and new jobs leave free for records of what runs,",
        "at most a tenth of the disk.",
      ].join(" "),
    ),
};
