// Bring what a load test measured into the estimates, and let a GPU host in that measures more.
import { writeFileSync } from 'node:fs';
import { createEnrolmentToken, importEvidence } from './client';
import type { EvidenceImportRequest } from './client';
import { run } from './connection';

const evidence: EvidenceImportRequest = {
    format: 'own_csv',
    content: `metric,value,statistic,workload.concurrency,workload.input_tokens,workload.output_tokens
time_per_output_token_seconds,0.0092,mean,16,1024,256
time_to_first_token_seconds,0.081,p50,16,1024,256
`,
    model: { source: 'catalog', id: 'llama-3.1-8b' },
    cluster: { accelerator: { source: 'catalog', id: 'h100-sxm' }, accelerator_count: 1 },
    workload: { kind: 'inference', weight_precision: 'bf16', engine: { name: 'vllm' } },
    note: 'Load test of the chat service',
};

run(async () => {
    const { data: imported } = await importEvidence({ body: evidence, throwOnError: true });
    for (const { family, measured, estimated } of imported.answers) {
        console.log(`${family}: measured ${measured.toPrecision(4)}, estimated ${estimated.toPrecision(4)}`);
    }
    const body = { node_name: 'rack-1', lifetime_seconds: 900 };
    const { data: issued } = await createEnrolmentToken({ body, throwOnError: true });
    const [file] = process.argv.slice(2);
    if (!issued.token || !file) throw new Error('give the file for the token; it is shown once');
    writeFileSync(file, issued.token, { mode: 0o600, flag: 'wx' });
    console.log(`on the node: ironlaw worker enrol --service URL --token-file ${file}`);
});
