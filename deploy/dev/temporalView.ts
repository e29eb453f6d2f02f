import type { Client } from '@temporalio/client';

/** A workflow as a list shows it. */
export interface WorkflowRow {
  workflowId: string;
  type: string;
  status: string;
}

/** Workflows that match a query of Temporal's list filter; the list lags behind by some milliseconds. */
export async function listWorkflows(temporal: Client, query: string): Promise<WorkflowRow[]> {
  const rows: WorkflowRow[] = [];
  for await (const { workflowId, type, status } of temporal.workflow.list({ query }))
    rows.push({ workflowId, type, status: status.name });
  return rows;
}

/** The running workflows of Proxies. */
export function runningProxyWorkflows(temporal: Client): Promise<WorkflowRow[]> {
  return listWorkflows(temporal, "WorkflowType = 'proxy' AND ExecutionStatus = 'Running'");
}
