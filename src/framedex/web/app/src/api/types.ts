/** The records of the service that the app uses, by the names of its description. */
import type { components } from "./schema";

type Schemas = components["schemas"];
export type Profile = Schemas["Profile"];
export type DatasetStatus = Schemas["DatasetStatusModel"];
export type DatasetStats = Schemas["DatasetStats"];
export type IssueSummary = Schemas["IssueSummary"];
export type LabelCount = Schemas["LabelCount"];
export type Task = Schemas["TaskRecord"];
export type TaskPage = Schemas["TaskPage"];
export type ResultsInfo = Schemas["ResultsInfo"];
export type ActionOutcome = Schemas["ActionOutcome"];
export type JournalStep = Schemas["JournalStep"];
export type JournalPage = Schemas["JournalPage"];
export type DuplicateGroup = Schemas["DuplicateGroup"];
export type MemberFacts = Schemas["MemberFacts"];
export type ProposedCopies = Schemas["ProposedCopiesInfo"];
export type DuplicatePage = Schemas["DuplicatePage"];
export type RankedLabelIssues = Schemas["RankedLabelIssues"];
export type SuggestedLabel = Schemas["SuggestedLabel"];
export type ValueHistogram = Schemas["ValueHistogram"];
export type CleanupPlanInfo = Schemas["CleanupPlanInfo"];
export type SourceState = Schemas["SourceState"];
export type Problem = Schemas["Problem"];
export type PreviewColumn = Schemas["PreviewColumn"];
export type SourcePreview = Schemas["SourcePreview"];
export type SyncResult = Schemas["SyncResult"];
export type Relocation = Schemas["Relocation"];
export type Snapshot = Schemas["Snapshot"];
export type StateCounts = Schemas["StateCounts"];
export type ComparisonCounts = Schemas["ComparisonCounts"];
export type ComparisonRows = Schemas["ComparisonRows"];
export type Tag = Schemas["Tag"];
export type Field = Schemas["Field"];
export type SavedView = Omit<Schemas["SavedViewModel"], "filters"> & {
  filters: Omit<Schemas["SavedViewModel"]["filters"], "vql"> & { vql: VqlElement[] };
};
export type TrendPoint = Schemas["TrendPointModel"];
export type DatasetMember = Schemas["DatasetMember"];
export type ApiCredentials = Schemas["ApiCredentials"];
export type LoginOptions = Schemas["LoginOptions"];
export type OwnSession = Schemas["OwnSession"];
export type User = Schemas["User"];
export type UserList = Schemas["UserList"];
export type TenantMember = Schemas["TenantMember"];
export type MemberList = Schemas["MemberList"];
export type AuditPage = Schemas["AuditPage"];
export type Notification = Schemas["Notification"];
export type NotificationPage = Schemas["NotificationPage"];

/** An element of a filter, for example `{labels: {op: "is", value: "dog"}}`. */
export type VqlElement = Record<string, unknown>;

export interface SearchQuery {
  text?: string;
  by?: string;
  similar?: string;
  limit?: number | null;
  relevance?: number;
}

export interface Region {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** What results and maps are of: images with frames of videos, or the objects in them. */
export type Entity = "IMAGES" | "OBJECTS";

export interface ResultQuery {
  vql?: VqlElement[] | null;
  search?: SearchQuery | null;
  region?: Region | null;
  sort?: { column: string; descending?: boolean } | null;
  ids?: string[] | null;
  entity_type?: Entity;
}

export interface IssueOfRow {
  issue_type: string;
  confidence: number;
  duplicate_group_id?: string | null;
}

/** A row of results; only the columns that were asked for are there. */
export interface Row {
  media_id: string;
  file_path: string;
  image_filename: string;
  width: number | null;
  height: number | null;
  v: string | null;
  labels: string[] | null;
  tags: string[] | null;
  caption: string | null;
  media_type: string;
  issues: IssueOfRow[] | null;
  in_basket?: boolean;
  is_corrupted_issue?: boolean | null;
  is_not_supported_issue?: boolean | null;
  is_over_limit_issue?: boolean | null;
  is_unreadable_issue?: boolean | null;
  frame_timestamp: number | null;
  /** How it is a verified copy of the image that was searched by; null for other rows. */
  copy?: string | null;
  [column: string]: unknown;
}
