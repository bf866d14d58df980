/** The words about people: what they may do, notifications, sharing, accounts, users. */

export const people = {
  permissions: {
    readOnly: "The service was started read-only: nothing can be changed.",
    locked: "Read only",
    reasons: {
      "dataset.edit": "You may look at this dataset, but not change it.",
      "dataset.export": "You may look at this dataset, but not export it.",
      "dataset.clone": "You may not copy this dataset.",
      "dataset.enrich": "You may not enrich this dataset.",
      "dataset.rename": "Only the owner of a dataset and administrators may rename it.",
      "dataset.delete": "Only the owner of a dataset and administrators may delete it.",
      "dataset.share": "Only the owner of a dataset and administrators may share it.",
    } as Record<string, string>,
  },
} as const;
