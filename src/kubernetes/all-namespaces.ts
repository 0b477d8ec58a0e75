/** As a client's namespace: every one. Their objects can be listed and watched, and no more. */
export const allNamespaces = "";
