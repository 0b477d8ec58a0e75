import { parsePositionals } from "./command-line.ts";
import { withRecords } from "./with-records.ts";
import { createSignInLink } from "../../auth/sign-in.ts";
import type { Settings } from "../settings/settings.ts";
import type { RecordsPlace } from "../storage-folder/data-directory.ts";

export const signInUsage = "sign-in";

/** Creates a link that opens the dashboard signed in, whether the service runs or not. */
export async function runSignInCommand(
  args: readonly string[],
  place: RecordsPlace,
  { MOS_PUBLIC_URL: publicUrl, MOS_PORT: port }: Settings,
): Promise<string> {
  parsePositionals(args, 0, signInUsage);
  const secret = await withRecords(place, (records, now) =>
    createSignInLink(records, "sign-in command", now),
  );
  return signInAddress(publicUrl ?? `http://localhost:${port}`, secret);
}

const loopbackHosts = new Set(["127.0.0.1", "[::1]"]);

/** The address of a sign-in link. What follows `#` is in no request, log or referrer. */
export function signInAddress(serviceUrl: string, secret: string): string {
  const url = new URL("/sign-in", serviceUrl);
  if (loopbackHosts.has(url.hostname)) url.hostname = "localhost";
  url.hash = secret;
  return url.href;
}
