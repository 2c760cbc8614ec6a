// Asks a live service through the generated client and prints what it answered; test_clients.py says
// what that has to be. The compiler checks it strictly against the generated types.
import {
    createOffer, deleteModel, deleteOffer, estimateCost, estimateCostExport, estimateMemory, estimateMemoryBatch,
    estimateThroughput, estimateUtilityBill, getOffer, importModel, listAccelerators, updateOffer,
} from './client';
import { client } from './client/client.gen';
import type { MemoryEstimateRequest, ModelImportRequest, OfferRequest, OfferPatch, Problem, UtilityBillRequest } from './client';

const [address, key, examples] = process.argv.slice(2);
const given = JSON.parse(examples) as {
    served: MemoryEstimateRequest & UtilityBillRequest;
    offer: OfferRequest;
    change: OfferPatch;
    model: ModelImportRequest;
};
client.setConfig({ baseUrl: address, auth: key });

const reference: UtilityBillRequest = {
    model: { source: 'parameter_count', parameter_count: 70_000_000_000 },
    cluster: { accelerator: { source: 'catalog', id: 'h100-sxm' }, accelerator_count: 1000 },
    workload: { kind: 'training', total_tokens: 2_000_000_000_000, sequence_length: 4096 },
    efficiency: { source: 'assumed', utilization: 0.5 },
    rental: { price_per_device_hour: { amount: '3', currency_code: 'USD' } },
    purchase: { price_per_device: { amount: '30000', currency_code: 'USD' } },
};

function refusal(problem: Problem | undefined) {
    const field = problem?.errors[0];
    return [problem?.status, problem?.code, field?.pointer, field?.code];
}

async function main() {
    const throwOnError = true;
    const memory = await estimateMemory({ body: given.served, throwOnError });
    const throughput = await estimateThroughput({ body: given.served, throwOnError });
    const { purchase, ...cost } = reference;
    const rented = await estimateCost({ body: cost, throwOnError });
    const exported = { ...cost, starts_at: '2026-12-01T00:00:00Z' };
    const table = await estimateCostExport({ body: exported, throwOnError });
    const [columns, line] = table.data.split('\n').map((row) => row.trim().split(','));
    const bill = await estimateUtilityBill({ body: reference, throwOnError });
    const batch = await estimateMemoryBatch({ body: { requests: [given.served, given.served] }, throwOnError });

    const { id } = given.offer;
    const created = await createOffer({ body: given.offer, throwOnError });
    const etag = created.response.headers.get('ETag') ?? '';
    const read = await getOffer({ path: { id }, throwOnError });
    const changed = await updateOffer({
        path: { id }, body: given.change, headers: { 'If-Match': etag }, throwOnError,
    });
    const stale = await updateOffer({ path: { id }, body: given.change, headers: { 'If-Match': etag } });
    const current = changed.response.headers.get('ETag') ?? '';
    const deleted = await deleteOffer({ path: { id }, headers: { 'If-Match': current }, throwOnError });
    const gone = await getOffer({ path: { id } });

    const ids: string[] = [];
    let token: string | null = '';
    while (token !== null) {
        const page: Awaited<ReturnType<typeof listAccelerators<true>>> = await listAccelerators({
            query: { page_size: 20, page_token: token, order_by: '-id' }, throwOnError,
        });
        ids.push(...page.data.items.map((row) => row.id));
        token = page.data.next_page_token;
    }

    const imported = await importModel({ body: given.model, throwOnError });
    await deleteModel({ path: { id: imported.data.model.id }, headers: { 'If-Match': '*' }, throwOnError });
    const refused = await estimateMemory({
        body: { ...given.served, model: { source: 'catalog', id: 'nothing' } },
    });

    console.log(JSON.stringify({
        memory: [memory.data.fits, memory.data.per_device.known_bytes],
        throughput: throughput.data.output_tokens_per_second?.value,
        cost: rented.data.total?.amount,
        table: line[columns.indexOf('BilledCost')],
        rent: bill.data.rent.total,
        break_even_runs: bill.data.break_even_runs?.value,
        gaps: bill.data.gaps.map((gap) => gap.pointer),
        batch: batch.data.results.map((answer) => answer.parameter_count),
        created: [created.response.status, created.response.headers.get('Location'), etag],
        read: read.data.price_per_device_hour.amount,
        changed: [changed.data.version, changed.data.price_per_device_hour.amount],
        stale: refusal(stale.error),
        deleted: deleted.response.status,
        gone: refusal(gone.error),
        ids,
        imported: imported.data.model.parameter_count,
        refused: refusal(refused.error),
    }));
}

void main();
