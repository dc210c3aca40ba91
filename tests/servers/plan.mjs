// A plan on the command line, carried out with a client: one JSON line for each step on standard output.
import { pathToFileURL } from 'node:url';
import path from 'node:path';

const modules = process.env.NODE_SERVERS;
export const plan = JSON.parse(process.argv[2]);

/** The packages are in build/servers, where Node does not look for what a file here imports. */
export const take = (file) => import(pathToFileURL(path.join(modules, file)));

export const said = (what) => process.stdout.write(`${JSON.stringify(what)}\n`);

/** What the person answers: `plan.answers` in order; `null` declines. */
export function answer(request) {
  const fields = Object.keys(request.params.requestedSchema?.properties ?? {});
  const given = (plan.answers ?? []).shift();
  said({ asked: request.params.message, fields });
  if (given === undefined) return { action: 'cancel' };
  if (given === null) return { action: 'decline' };
  return { action: 'accept', content: Object.fromEntries(fields.map((field) => [field, given])) };
}

/** Every step is carried out, whatever became of the one before. */
export async function carryOut(steps) {
  for (const step of plan.steps) {
    const [name] = Object.keys(step);
    try {
      said({ step: name, ...(await steps[name](step[name])) });
    } catch (error) {
      said({ step: name, error: String(error?.message ?? error), code: error?.code ?? null });
    }
  }
}
