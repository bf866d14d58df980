/** The words of copies among the results of a search by an image, which are loaded with the grid. */
export const copies = {
  badge: (change: string) => `Copy: ${change}`,
};
