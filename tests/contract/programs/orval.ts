import axios from 'axios';
import * as made from './client';
import { address, authorization, run } from './flows';

axios.defaults.baseURL = address;
axios.defaults.headers.common.Authorization = authorization;
axios.defaults.proxy = false;

run({
    bill: async (body) => (await made.estimateUtilityBill(body)).data,
    createPlan: async (body) => (await made.createPlan(body)).data,
    getPlan: async (id) => (await made.getPlan(id)).data,
    createQuote: async (body) => (await made.createQuote(body)).data,
    submitQuote: async (id, content_digest) => (await made.submitQuote(id, { content_digest })).data,
    getApproval: async (id) => (await made.getApproval(id)).data,
});
