import {
  type SourceCredentials,
  sourceCredentials,
} from "../contract/models/source-credentials.ts";
import { readYamlFile } from "../settings/read-yaml-file.ts";
import type { Settings } from "./settings.ts";

/** @throws StartError */
export async function readSourceCredentials({
  MOS_SOURCE_CREDENTIALS_FILE: path,
}: Settings): Promise<SourceCredentials> {
  if (path === undefined) return sourceCredentials.parse({});
  return readYamlFile(sourceCredentials, { title: "Source credentials", path });
}
