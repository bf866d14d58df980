/** The words about people: what they may do, notifications, sharing, accounts, users. */

const results = (n: number): string => `${n.toLocaleString()} new ${n === 1 ? "result" : "results"}`;

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
  notifications: {
    none: "There are no notifications. Saved views with alerts make one for each addition that brings them new results.",
    noneUnread: "All notifications were read.",
    bell: (n: number) => (n === 0 ? "Notifications" : `Notifications, ${n.toLocaleString()} unread`),
    text: (n: number, view: string, dataset: string) => `${results(n)} of “${view}” in “${dataset}”`,
    arrived: (words: string) => `${words}. See: G N`,
    unread: "Unread",
    unreadOnly: "Unread only",
    read: "Mark as read",
    readAll: "Mark all as read",
    allRead: (n: number) => `Marked ${n.toLocaleString()} as read`,
  },
  pager: {
    name: "Pages of the list",
    newer: "Previous",
    older: "Next",
    range: (first: number, last: number, all: number) =>
      `${first.toLocaleString()} to ${last.toLocaleString()} of ${all.toLocaleString()}`,
  },
} as const;
