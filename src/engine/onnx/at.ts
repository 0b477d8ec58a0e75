/** The element at an index that the array has. @throws RangeError where it has none there */
export function at<T>(array: ArrayLike<T>, index: number): T {
  const element = array[index];
  if (element === undefined) throw new RangeError(`No element ${index} among ${array.length}`);
  return element;
}
