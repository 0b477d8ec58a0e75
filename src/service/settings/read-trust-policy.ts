import { type TrustPolicy, trustPolicy } from "../../contract/people/trust-policy.ts";
import { readYamlFile } from "../../settings/read-targets.ts";

/** @throws StartError */
export async function readTrustPolicy(path: string): Promise<TrustPolicy> {
  return readYamlFile(trustPolicy, { title: "Trust policy", path });
}
