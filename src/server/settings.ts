import { delimiter, resolve } from "node:path";
import { z } from "zod";

const number = z
  .string()
  .regex(/^\d{1,15}$/, { error: "must be a whole number" })
  .transform(Number);

/** Every environment variable that the service reads. */
export const settings = z.object({
  MOS_HOST: z.string().min(1).default("127.0.0.1").describe("Address to listen on."),
  MOS_PORT: number.pipe(z.int().max(65_535)).default(8080).describe("Port to listen on; 0 takes a free one."),
  MOS_DATA_DIR: z.string().min(1).default("./data").describe("Folder of everything that the service keeps."),
  MOS_WORKERS: number
    .pipe(z.int().min(1).max(1024))
    .optional()
    .describe("Jobs that are worked on at once; without it one for every two cores."),
  MOS_MAX_MODEL_BYTES: number
    .pipe(z.int().min(1))
    .default(64 * 1024 ** 3)
    .describe("Largest model, bytes."),
  MOS_ALLOWED_ROOTS: z
    .string()
    .default("")
    .transform((list) =>
      list
        .split(delimiter)
        .filter((root) => root !== "")
        .map((root) => resolve(root)),
    )
    .describe("Folders under which `file://` models may lie, separated by colons; without it there are none."),
  MOS_ALLOW_PRIVATE_ADDRESSES: z
    .enum(["true", "false"])
    .default("false")
    .transform((allowed) => allowed === "true")
    .describe("Whether models may come from `http://` and from addresses that are not on the public internet."),
  MOS_TARGETS_FILE: z
    .string()
    .min(1)
    .optional()
    .describe(
      "YAML file of the targets, in the form of the answer to `GET /targets`; without it there are built-in ones.",
    ),
});
export type Settings = z.infer<typeof settings>;
