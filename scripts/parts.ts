const cluster = ["kubernetes", "resources", "controller-runtime"];
const joined = ["storage", "settings", "kubernetes", "executors", "local", "cluster", "github-app"];
const work = ["contract", "log", "records", "auth"];

/**
 * Every part of the product with the other parts that its files may import, lowest first: an import
 * leads to a part further up in this table. Lint enforces it, and ARCHITECTURE.md describes it.
 */
export const parts: Readonly<Record<string, readonly string[]>> = {
  "src/contract": [],
  "src/log": [],
  "src/limits": [],
  "src/kubernetes": ["limits"],
  "src/model-files": ["contract"],
  "src/engine": ["contract", "log", "model-files"],
  "src/records": ["contract", "limits"],
  "src/storage": ["contract", "limits", "model-files"],
  "src/client": ["contract", "limits", "model-files"],
  "src/report": ["contract"],
  "src/settings": ["contract"],
  "src/github": ["limits", "report"],
  "src/resources": ["contract", "kubernetes"],
  "src/controller-runtime": ["log", "limits", "kubernetes"],
  "src/auth": ["contract", "log", "records"],
  "src/executors": work,
  "src/executors/local": [...work, "executors", "storage"],
  "src/executors/cluster": [...work, "limits", "executors", ...cluster],
  "src/github-app": ["contract", "log", "records", "report", "github"],
  "src/webhooks": ["contract", "log", "records", "storage"],
  "src/tracing": ["contract", "log", "records"],
  "src/server": [...work, "limits", "storage", "executors", "github-app", "webhooks", "tracing"],
  "src/service": [...work, ...joined, "controller-runtime", "webhooks", "tracing", "server"],
  "src/worker": ["contract", "log", "limits", "model-files", "engine", "storage"],
  "src/compress": ["contract", "log", "limits", "engine", "worker"],
  "src/action": ["contract", "log", "limits", "client", "report", "github"],
  "src/dashboard": ["contract", "limits", "model-files", "client", "report"],
  "src/demo": ["contract", "log", "limits", "client"],
  "operator/controllers": ["contract", "log", "limits", ...cluster],
  operator: ["contract", "log", "limits", "settings", ...cluster, "controllers"],
};
