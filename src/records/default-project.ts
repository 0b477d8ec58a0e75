/** The tenant of everything on a service that has not been told of others. */
export const defaultProject = "default";
