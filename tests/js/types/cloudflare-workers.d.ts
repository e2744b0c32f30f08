// What `cloudflare:workers` has, for programs that are compiled without the types of @cloudflare/workers-types;
// cloudflare.ts is compiled with them.

declare module "cloudflare:workers" {
  export abstract class DurableObject<Env = unknown> {
    constructor(ctx: any, env: Env);
    protected ctx: any;
    protected env: Env;
    alarm?(info?: any): void | Promise<void>;
    fetch?(request: Request): Response | Promise<Response>;
  }
  export abstract class WorkflowEntrypoint<Env = unknown, Payload = unknown> {
    protected ctx: any;
    protected env: Env;
    run(event: Readonly<WorkflowEvent<Payload>>, step: WorkflowStep): Promise<unknown>;
  }
  export interface WorkflowEvent<Payload> { payload: Readonly<Payload>; instanceId: string }
  export interface WorkflowStep {
    do(name: string, config: any, work: (context: any) => Promise<any>): Promise<any>;
    sleep(name: string, duration: number): Promise<void>;
    waitForEvent(name: string, options: { type: string; timeout?: any }): Promise<{ payload: any }>;
  }
}

interface Workflow<Params> { create(options: { params: Params }): Promise<{ id: string }>; get(id: string): Promise<{ sendEvent(event: { type: string; payload: unknown }): Promise<void>; status(): Promise<any> }> }
interface DurableObjectNamespace<T> { idFromName(name: string): any; get(id: any): T }
