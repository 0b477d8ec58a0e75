/** API group of the custom resources, and prefix of the labels of what belongs to them. */
export const apiGroup = "modeloptimization.dev";
export const apiVersion = `${apiGroup}/v1`;
