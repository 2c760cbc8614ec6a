import org.openapitools.client.api.PlansApi;
import org.openapitools.client.model.CatalogModel;
import org.openapitools.client.model.ModelReference;
import org.openapitools.client.model.PlanGoal;
import org.openapitools.client.model.PlanRequest;
import org.openapitools.client.model.PlanSearch;
import org.openapitools.client.model.PlanState;
import org.openapitools.client.model.RentedDevices;
import org.openapitools.client.model.TrainingWorkloadInput;
import org.openapitools.client.model.WorkloadInput;
import java.util.List;

/** The cheapest of several ways to train a model: a search that is waited for. */
public final class CheapestPlan {
    private static RentedDevices rented(String accelerator, String price) {
        return new RentedDevices()
                .name(accelerator + " at " + price + " USD")
                .cluster(Questions.devices(accelerator, 16))
                .rental(Questions.at(price));
    }

    private static PlanRequest question() {
        var model = new CatalogModel().source(CatalogModel.SourceEnum.CATALOG).id("llama-3.1-8b");
        var workload = new TrainingWorkloadInput()
                .kind(TrainingWorkloadInput.KindEnum.TRAINING)
                .sequenceLength(8192L)
                .globalBatchSize(64L)
                .totalTokens(1_000_000_000L);
        return new PlanRequest()
                .model(new ModelReference(model))
                .workload(new WorkloadInput(workload))
                .goal(PlanGoal.PLAN_GOAL_CHEAPEST)
                .rented(List.of(rented("h100-sxm", "2.50"), rented("a100-sxm-80gb", "1.30")))
                .search(new PlanSearch().offers(false).acceleratorCounts(List.of(8L, 16L)));
    }

    public static void main(String[] arguments) throws Exception {
        Connection.run(client -> {
            var plans = new PlansApi(client);
            var plan = plans.createPlan(question(), null, null);
            while (plan.getState() == PlanState.PLAN_STATE_RUNNING) {
                Thread.sleep(500);
                plan = plans.getPlan(plan.getId());
            }
            if (plan.getAnswer() == null) {
                throw new IllegalStateException("the plan is " + plan.getState() + ": " + plan.getErrorSummary());
            }
            for (var row : plan.getAnswer().getRows().stream().limit(3).toList()) {
                var layout = row.getParallelism();
                System.out.printf(
                        "%d. %s: %d devices, tensor %d, sharding %s, %s%n",
                        row.getRank(), row.getSupply().getName(), row.getAcceleratorCount(),
                        layout.getTensor(), layout.getSharding(), Connection.money(row.getCost()));
            }
        });
    }
}
