import createClient from 'openapi-fetch';
import type { paths } from './client';
import { address, authorization, run } from './flows';

const client = createClient<paths>({ baseUrl: address, headers: { authorization } });

function answered<Answer>({ data, error }: { data?: Answer; error?: unknown }): Answer {
    if (data === undefined) throw error;
    return data;
}

run({
    bill: async (body) => answered(await client.POST('/v1/estimates/utility-bill', { body })),
    createPlan: async (body) => answered(await client.POST('/v1/plans', { body })),
    getPlan: async (id) => answered(await client.GET('/v1/plans/{id}', { params: { path: { id } } })),
    createQuote: async (body) => answered(await client.POST('/v1/quotes', { body })),
    submitQuote: async (id, content_digest) =>
        answered(await client.POST('/v1/quotes/{id}:submit', { params: { path: { id } }, body: { content_digest } })),
    getApproval: async (id) => answered(await client.GET('/v1/approvals/{id}', { params: { path: { id } } })),
});
