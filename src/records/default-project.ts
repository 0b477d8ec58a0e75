/** The project of everything that does not name another. */
export const defaultProject = "default";
