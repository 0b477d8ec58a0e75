import { execFileSync } from "node:child_process";

const namespaces = ["--user", "--map-root-user", "--mount", "--net", "--ipc", "--pid", "--fork"];

/** False where workers are contained, else the sentence to skip with. */
export const namespacesMissing = canContain() ? false : "the system allows no namespaces";

function canContain(): boolean {
  try {
    execFileSync("unshare", [...namespaces, "true"]);
    return true;
  } catch {
    return false;
  }
}
