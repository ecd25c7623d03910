#include "table.h"

#include <map>
#include <unordered_map>

namespace rdna {
namespace {

// Names of other generations for what the tables name as gfx11 does.
constexpr std::pair<std::string_view, std::string_view> other_names[] = {
    // gfx12
    {"s_add_co_u32", "s_add_u32"},
    {"s_add_co_ci_u32", "s_addc_u32"},
    {"s_sub_co_u32", "s_sub_u32"},
    {"s_sub_co_ci_u32", "s_subb_u32"},
    {"s_add_co_i32", "s_add_i32"},
    {"s_sub_co_i32", "s_sub_i32"},
    {"s_addk_co_i32", "s_addk_i32"},
    {"s_min_num_f32", "s_min_f32"},
    {"s_max_num_f32", "s_max_f32"},
    {"v_min_num_f32", "v_min_f32"},
    {"v_max_num_f32", "v_max_f32"},
    {"v_min3_num_f32", "v_min3_f32"},
    {"v_max3_num_f32", "v_max3_f32"},
    {"v_minmax_num_f32", "v_minmax_f32"},
    {"v_maxmin_num_f32", "v_maxmin_f32"},
    {"v_med3_num_f32", "v_med3_f32"},
    {"v_min_num_f16", "v_min_f16"},
    {"v_max_num_f16", "v_max_f16"},
    {"v_min3_num_f16", "v_min3_f16"},
    {"v_max3_num_f16", "v_max3_f16"},
    {"v_minmax_num_f16", "v_minmax_f16"},
    {"v_maxmin_num_f16", "v_maxmin_f16"},
    {"v_med3_num_f16", "v_med3_f16"},
    {"v_pk_min_num_f16", "v_pk_min_f16"},
    {"v_pk_max_num_f16", "v_pk_max_f16"},
    {"v_mad_co_u64_u32", "v_mad_u64_u32"},
    {"v_mad_co_i64_i32", "v_mad_i64_i32"},
    {"global_atomic_min_num_f32", "global_atomic_min_f32"},
    {"global_atomic_max_num_f32", "global_atomic_max_f32"},
    {"ds_min_num_f32", "ds_min_f32"},
    {"ds_min_num_rtn_f32", "ds_min_rtn_f32"},
    {"ds_max_num_rtn_f32", "ds_max_rtn_f32"},
    {"ds_max_num_f32", "ds_max_f32"},
};

std::unordered_map<std::string_view, const Row*> index_rows() {
  std::unordered_map<std::string_view, const Row*> index;
  for (const Row* row : all_rows())
    index[row->name] = row;
  for (auto [other, name] : other_names)
    index[other] = index.at(name);
  return index;
}

} // namespace

std::vector<const Row*> all_rows() {
  std::vector<const Row*> rows;
  for (Table table :
       {scalar_table(),
        scalar_float_table(),
        control_table(),
        vector_table(),
        vector_float_table(),
        half_table(),
        packed_table(),
        compare_table(),
        lanes_table(),
        matrix_table(),
        global_table(),
        shared_table(),
        atomic_table()})
    for (const Row& row : table)
      rows.push_back(&row);
  return rows;
}

const Row* row_of(const Instruction& i) {
  return find_row(without_encoding(i.text.substr(0, i.text.find(' '))));
}

const Row* find_row(std::string_view name) {
  static const auto index = index_rows();
  auto found = index.find(name);
  return found == index.end() ? nullptr : found->second;
}

} // namespace rdna
