//! The plans of the statements that read many rows: each by its index, however many rows there are.

use super::Table;
use crate::postgres::write::claims::CLAIM;
use crate::postgres::write::set_based::NEXT_DUE;

/// Returns the plan of a statement that was prepared for any values.
async fn plan(table: &Table, sql: &str, types: &str, values: &str) -> String {
    let session = &table.node.session;
    session.run_text(&format!("PREPARE judged{types} AS {sql}")).await.unwrap();
    let rows = session.client().simple_query(&format!("EXPLAIN EXECUTE judged{values}")).await.unwrap();
    session.run_text("DEALLOCATE judged").await.unwrap();
    let lines = rows.iter().filter_map(|message| match message {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(ToOwned::to_owned),
        _ => None,
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// HUB-5: claims read the index of what waits, and nothing else of the table, in an empty table, with one row and with many; and so
/// with statistics that say that there is nothing. So does the look at what is due next.
#[tokio::test]
async fn hub_5_claims_use_the_index_however_many_rows_there_are() {
    let table = Table::new(1).await;
    let fill = "INSERT INTO work (number, service, rule, is_replay, state, epoch, due, touched, accepted)
        SELECT n, 'service-' || n % 1000, 'rule', false, 1 + n % 3, 1, n, n, n FROM generate_series";
    let steps = [
        ("empty", String::new()),
        ("one row", format!("{fill}(1, 1) AS n; ANALYZE work")),
        ("many rows with old statistics", format!("{fill}(2, 200000) AS n")),
        ("many rows", "ANALYZE work".to_owned()),
    ];
    for (what, step) in steps {
        table.node.text(&step).await;
        for mode in ["force_generic_plan", "force_custom_plan"] {
            table.node.text(&format!("SET plan_cache_mode = {mode}")).await;
            let types = "(text[], int8[], int8[], int8[], int8, int8)";
            let values = "('{service-1,service-2}', '{5,5}', '{5,5}', '{NULL,7}', 100, 1)";
            let claim = plan(&table, &CLAIM, types, values).await;
            let next = plan(&table, NEXT_DUE, "", "").await;
            for (statement, plan, scans) in [("claim", claim, 3), ("next due", next, 2)] {
                assert!(!plan.contains("Seq Scan on work"), "{statement}, {what}, {mode}:\n{plan}");
                let used = plan.matches("work_waiting").count();
                assert!(used >= scans, "{statement}, {what}, {mode}: {used} scans\n{plan}");
            }
        }
    }
}
