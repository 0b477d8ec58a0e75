interface ScriptPolicy {
  createScriptURL(address: string): string;
}

interface PolicyFactory {
  createPolicy(name: string, rules: ScriptPolicy): ScriptPolicy;
}

declare global {
  interface Window {
    /** Absent in browsers that do not enforce the page's policy about it. */
    readonly trustedTypes?: PolicyFactory;
  }
}

const rules: ScriptPolicy = {
  createScriptURL(address) {
    if (new URL(address, location.href).origin === location.origin) return address;
    throw new TypeError(`"${address}" is not of this origin`);
  },
};

const policy = window.trustedTypes?.createPolicy("dashboard", rules) ?? rules;

/** An address that a worker may be started from: one of this origin. */
export function trustWorkerAddress(address: string): string {
  return policy.createScriptURL(address);
}
