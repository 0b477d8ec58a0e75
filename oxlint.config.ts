import { basename } from "node:path";
import { defineConfig } from "oxlint";
import { parts } from "./scripts/parts.ts";

const size = { skipBlankLines: true, skipComments: true };

/** Packages that only one part imports. */
const ownedPackages: Readonly<Record<string, readonly string[]>> = {
  "src/kubernetes": ["@kubernetes/client-node"],
  "src/engine": ["onnxruntime-node"],
  "src/tracing": ["@opentelemetry/*"],
};

const networkModules = [
  "node:http",
  "node:https",
  "node:http2",
  "node:net",
  "node:dns",
  "node:dns/*",
  "undici",
];

/** What the files of a part may not import: other parts, except those that the table names. */
function restrictedImports(part: string, imports: readonly string[]) {
  const others = Object.keys(parts).map((other) => basename(other));
  const allowed = new Set([basename(part), ...imports]);
  const refused = others.filter((other) => !allowed.has(other));
  return [
    {
      group: refused.map((other) => `**/${other}/**`),
      message: `${part} may import ${imports.join(", ") || "no other part"} only.`,
    },
    ...Object.entries(ownedPackages)
      .filter(([owner]) => owner !== part)
      .map(([owner, group]) => ({ group: [...group], message: `Only ${owner} imports it.` })),
    ...(part === "src/engine"
      ? [{ group: networkModules, message: "The engine has no network." }]
      : []),
    ...(part === "src/contract"
      ? [{ regex: "^([^.z]|z[^o]|zo[^d]|zod.)", message: "The contract imports zod only." }]
      : []),
  ];
}

export default defineConfig({
  plugins: ["typescript", "import", "unicorn", "oxc", "node"],
  categories: { correctness: "error" },
  options: { typeAware: true },
  ignorePatterns: ["src/engine/onnx/onnx_pb.*", "dist/**"],
  rules: {
    "import/no-cycle": ["error", { ignoreTypes: false }],
    "import/no-default-export": "error",
    "no-warning-comments": "error",
    "node/no-process-env": "error",
    "unicorn/no-process-exit": "error",
    "unicorn/filename-case": ["error", { case: "kebabCase" }],
    "oxc/no-barrel-file": ["error", { threshold: 0 }],
    "typescript/no-explicit-any": "error",
    "typescript/no-non-null-assertion": "error",
    "typescript/no-floating-promises": [
      "error",
      {
        allowForKnownSafeCalls: [
          { from: "package", name: ["test", "it", "describe", "suite"], package: "node:test" },
        ],
      },
    ],
    "typescript/no-misused-promises": "error",
    "typescript/return-await": "error",
    "typescript/switch-exhaustiveness-check": "error",
    "typescript/no-unnecessary-condition": "error",
    "typescript/no-unnecessary-type-assertion": "error",
    "typescript/only-throw-error": "error",
    "typescript/prefer-promise-reject-errors": "error",
    "typescript/consistent-type-imports": "error",
    "typescript/no-deprecated": "error",
    eqeqeq: "error",
    "no-console": "error",
    "prefer-const": "error",
    "max-lines": ["error", { max: 400, ...size }],
    "max-lines-per-function": ["error", { max: 60, ...size }],
    "max-params": ["error", { max: 4 }],
    "max-depth": ["error", { max: 4 }],
    complexity: ["error", { max: 15 }],
  },
  overrides: [
    {
      files: ["test/**", "bench/**", "scripts/**"],
      rules: {
        "max-lines": ["error", { max: 500, ...size }],
        "max-lines-per-function": "off",
        "node/no-process-env": "off",
        "no-console": "off",
      },
    },
    {
      // Their methods hold the queries, and one function holds the methods.
      files: ["src/records/**/*-records.ts"],
      rules: { "max-lines-per-function": "off" },
    },
    {
      files: ["**/main.ts", "scripts/test.ts"],
      rules: { "node/no-process-env": "off", "unicorn/no-process-exit": "off" },
    },
    { files: ["src/demo/**"], rules: { "no-console": "off" } },
    {
      files: ["oxlint.config.ts", "**/vite.config.ts", "**/assets.d.ts"],
      rules: { "import/no-default-export": "off" },
    },
    {
      files: ["src/dashboard/**"],
      // Vite's own forms of imports have exports that lint does not know; tsc does.
      plugins: ["typescript", "import", "unicorn", "oxc", "node", "react", "jsx-a11y"],
      rules: {
        "import/default": "off",
        "react/no-danger": "error",
        "react/rules-of-hooks": "error",
        "react/jsx-key": "error",
      },
    },
    ...Object.entries(parts).map(([part, imports]) => ({
      files: [`${part}/**`],
      rules: {
        "no-restricted-imports": ["error" as const, { patterns: restrictedImports(part, imports) }],
      },
    })),
  ],
});
