const names = ["PATH", "HOME", "NODE_COMPILE_CACHE"];

/** What processes of tests inherit: where programs lie, a home, and the modules that Node has compiled before. */
export function inheritedEnvironment(): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, process.env[name] ?? ""]));
}
