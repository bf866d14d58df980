/** The pages of a dataset and their dialogs: one file, as small ones take longer than their bytes. */
export { openCopy } from "../parts/CopyDialog";
export { openSharing } from "../parts/Sharing";
export { default as Cleanup } from "./Cleanup";
export { default as Clusters } from "./Clusters";
export { default as Duplicates } from "./Duplicates";
export { default as History } from "./History";
export { default as Issues } from "./Issues";
export { default as Labels } from "./Labels";
export { default as MapPage } from "./Map";
export { default as Overview } from "./Overview";
export { default as Pictures } from "./Pictures";
export { default as Settings } from "./Settings";
export { default as Viewer } from "./Viewer";
export { default as Views } from "./Views";
