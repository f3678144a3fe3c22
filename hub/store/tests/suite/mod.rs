//! The conformance suite: what every store must do, as functions over any store.
//!
//! A store joins with a [`StoreFactory`] and one line, `conformance!(name, Factory)`. What belongs to one store alone (its file,
//! its lock, its schema, a kill of the process) is tested beside the suite.

pub(crate) mod alerts;
pub(crate) mod broken;
pub(crate) mod census;
pub(crate) mod crash;
pub(crate) mod deliveries;
mod factory;
pub(crate) mod fixtures;
mod letter_mix;
pub(crate) mod letters;
pub(crate) mod operations;
pub(crate) mod order;
pub(crate) mod races;
pub(crate) mod races_admin;
pub(crate) mod registry;
pub(crate) mod retention;
pub(crate) mod texts;
pub(crate) mod units;
mod wrapped;

pub(crate) use factory::{Capabilities, MemoryFactory, PostgresFactory, SqliteFactory, StoreFactory};

/// Runs the whole suite on a store.
macro_rules! conformance {
    ($store:ident, $factory:ty) => {
        mod $store {
            $crate::suite::conformance!(@ $factory, registry: hub_1_services_and_rules_are_kept_by_version);
            $crate::suite::conformance!(@ $factory, units:
                hub_14_a_unit_is_committed_as_a_whole_or_not_at_all,
                hub_3_the_same_event_is_stored_once,
                hub_3_a_key_is_claimed_once);
            $crate::suite::conformance!(@ $factory, deliveries:
                hub_5_a_delivery_waits_is_taken_and_ends,
                prm_2_a_restart_takes_up_what_was_in_hand,
                hub_5_the_longest_due_come_first,
                hub_5_what_waits_is_on_the_first_page_whatever_has_ended_since,
                hub_5_what_is_put_back_still_comes_forward);
            $crate::suite::conformance!(@ $factory, order:
                hub_5_deliveries_with_one_key_go_one_after_the_other,
                hub_5_a_dead_letter_holds_its_order_until_it_is_handled,
                hub_5_a_replay_in_another_order_releases_the_one_of_its_dead_letter,
                hub_5_an_enabled_rule_starts_nothing_before_a_replay_that_has_failed,
                hub_5_what_a_rule_held_is_released_in_order);
            $crate::suite::conformance!(@ $factory, letters:
                hub_6_dead_letters_are_found_by_their_words,
                hub_6_a_peer_that_talks_too_much_makes_a_bounded_number_of_groups,
                hub_6_filters_find_what_a_look_at_each_finds_and_groups_count_right,
                hub_6_a_dead_letter_is_deleted_restored_and_purged,
                hub_6_what_is_not_there_has_no_note);
            $crate::suite::conformance!(@ $factory, operations:
                hub_6_a_batch_and_its_progress_are_one,
                hub_6_an_operation_changes_only_from_a_state_that_allows_it);
            $crate::suite::conformance!(@ $factory, crash:
                prm_1_a_crash_makes_a_suspect_and_an_orderly_end_none,
                prm_1_crashes_in_the_same_step_convict,
                prm_1_crashes_while_it_waits_convict_nobody);
            $crate::suite::conformance!(@ $factory, census:
                obs_2_what_waits_is_counted_and_not_too_far,
                obs_1_a_delivery_from_the_store_knows_its_trace);
            $crate::suite::conformance!(@ $factory, alerts:
                hub_12_rules_and_channels_are_kept_by_version,
                hub_12_an_incident_is_kept_with_who_was_told,
                hub_12_dead_letters_are_counted_by_age);
            $crate::suite::conformance!(@ $factory, retention:
                hub_9_an_event_goes_when_all_that_came_of_it_is_old,
                prm_2_names_are_not_given_out_again_when_all_is_pruned,
                hub_9_an_event_from_the_future_keeps_no_other,
                hub_9_what_comes_between_keeps_an_event,
                hub_9_audit_and_keys_go_by_their_age);
            $crate::suite::conformance!(@ $factory, texts:
                hub_14_texts_of_deliveries_come_back,
                hub_14_texts_of_dead_letters_come_back,
                hub_14_texts_of_people_come_back);
            $crate::suite::conformance!(@ $factory, races:
                hub_14_two_claimers_get_different_deliveries,
                hub_14_of_two_replays_and_of_two_versions_one_succeeds);
            $crate::suite::conformance!(@ $factory, races_admin:
                hub_14_of_two_that_put_a_version_one_succeeds,
                hub_4_an_outage_that_two_report_is_one,
                hub_3_of_two_units_under_one_key_one_is_applied,
                hub_6_a_dead_letter_is_replayed_once_whatever_else_is_done_to_it,
                hub_6_a_dead_letter_that_joins_while_the_last_one_leaves_has_a_group,
                hub_6_two_messages_at_once_keep_within_the_limit,
                hub_6_a_dead_letter_is_indexed_once,
                hub_9_an_event_is_not_pruned_from_under_a_replay,
                hub_6_a_batch_is_taken_once_and_every_outcome_counts,
                hub_12_an_acknowledgement_is_not_undone);
        }
    };
    (@ $factory:ty, $module:ident: $($test:ident),+ $(,)?) => {
        mod $module {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                crate::suite::$module::$test::<$factory>().await;
            })+
        }
    };
}
pub(crate) use conformance;
