/** The words of saved views, of settings and of the import. */
const files = (n: number): string => `${n.toLocaleString()} ${n === 1 ? "file" : "files"}`;

export const places = {
  views: {
    none: "There are no saved views yet. Filter or search the images, and save the view there.",
    name: "Name of the view",
    saved: (name: string) => `Saved the view ${name}`,
    alerts: "Alerts",
    remove: "Delete",
    last: (when: string) => `last results ${when}`,
    trend: (n: string, all: string) => `${n} additions, ${all} results in all`,
  },
  settings: {
    name: "Name",
    description: "Description",
    save: "Save",
    saved: "Saved the name and the description",
    tags: "Tags",
    fields: "Custom fields",
    fieldName: "New field",
    fieldType: "Type of the field",
    options: "Options, with commas between them",
    addField: "Add the field",
    rename: (name: string) => `Rename the tag ${name}`,
    renameWord: "Rename",
    removeWord: "Delete",
    deletion: "Delete the dataset",
    deletionHint: "The dataset, its snapshots and its edits are deleted for good. The files of the images stay.",
    remove: "Delete the dataset",
    typeName: (name: string) => `Type “${name}” to delete it`,
  },
  import: {
    title: "New dataset",
    name: "Name of the dataset",
    files: "Drop images, videos or a folder here, or choose files",
    chosen: (n: number) => `${files(n)} chosen`,
    leftOut: (n: number) => `${files(n)} left out: neither images nor videos`,
    path: "Or a folder of the server",
    progress: "Uploaded files",
    uploaded: (n: string, all: string) => `${n} of ${all} uploaded`,
    submit: "Create the dataset",
  },
} as const;
