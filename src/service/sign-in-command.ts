import { createSignInLink } from "../auth/sign-in.ts";
import { parsePositionals } from "./parse-positionals.ts";
import type { RecordsPlace } from "./records-place.ts";
import type { Settings } from "./settings.ts";
import { signInAddress } from "./sign-in-address.ts";
import { withRecords } from "./with-records.ts";

export const signInUsage = "sign-in";

/** Creates a link that opens the dashboard signed in, whether the service runs or not. */
export async function runSignInCommand(
  args: readonly string[],
  place: RecordsPlace,
  { MOS_PUBLIC_URL: publicUrl, MOS_PORT: port }: Settings,
): Promise<string> {
  parsePositionals(args, { count: 0, usage: signInUsage });
  const secret = await withRecords(place, (records, now) =>
    createSignInLink(records, { now, by: "sign-in command" }),
  );
  return signInAddress(publicUrl ?? `http://localhost:${port}`, secret);
}
