#include "table.h"

#include <string>
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
    // gfx10.3
    {"s_load_dword", "s_load_b32"},
    {"s_load_dwordx2", "s_load_b64"},
    {"s_load_dwordx4", "s_load_b128"},
    {"s_load_dwordx8", "s_load_b256"},
    {"s_load_dwordx16", "s_load_b512"},
    {"s_andn2_b32", "s_and_not1_b32"},
    {"s_andn2_b64", "s_and_not1_b64"},
    {"s_orn2_b32", "s_or_not1_b32"},
    {"s_orn2_b64", "s_or_not1_b64"},
    {"s_andn1_saveexec_b32", "s_and_not0_saveexec_b32"},
    {"s_andn1_saveexec_b64", "s_and_not0_saveexec_b64"},
    {"s_andn2_saveexec_b32", "s_and_not1_saveexec_b32"},
    {"s_andn2_saveexec_b64", "s_and_not1_saveexec_b64"},
    {"s_orn1_saveexec_b32", "s_or_not0_saveexec_b32"},
    {"s_orn1_saveexec_b64", "s_or_not0_saveexec_b64"},
    {"s_orn2_saveexec_b32", "s_or_not1_saveexec_b32"},
    {"s_orn2_saveexec_b64", "s_or_not1_saveexec_b64"},
    {"s_andn1_wrexec_b32", "s_and_not0_wrexec_b32"},
    {"s_andn1_wrexec_b64", "s_and_not0_wrexec_b64"},
    {"s_andn2_wrexec_b32", "s_and_not1_wrexec_b32"},
    {"s_andn2_wrexec_b64", "s_and_not1_wrexec_b64"},
    {"s_ff1_i32_b32", "s_ctz_i32_b32"},
    {"s_ff1_i32_b64", "s_ctz_i32_b64"},
    {"s_flbit_i32_b32", "s_clz_i32_u32"},
    {"s_flbit_i32_b64", "s_clz_i32_u64"},
    {"s_flbit_i32", "s_cls_i32"},
    {"s_inst_prefetch", "s_set_inst_prefetch_distance"},
    {"v_ffbh_u32", "v_clz_i32_u32"},
    {"v_ffbl_b32", "v_ctz_i32_b32"},
    {"v_ffbh_i32", "v_cls_i32"},
    {"v_mul_legacy_f32", "v_mul_dx9_zero_f32"},
    {"v_cvt_pkrtz_f16_f32", "v_cvt_pk_rtz_f16_f32"},
    {"v_cvt_rpi_i32_f32", "v_cvt_nearest_i32_f32"},
    {"v_cvt_flr_i32_f32", "v_cvt_floor_i32_f32"},
    {"global_atomic_inc", "global_atomic_inc_u32"},
    {"global_atomic_dec", "global_atomic_dec_u32"},
    {"global_atomic_fmin", "global_atomic_min_f32"},
    {"global_atomic_fmax", "global_atomic_max_f32"},
    {"ds_read_b32", "ds_load_b32"},
    {"ds_read_b64", "ds_load_b64"},
    {"ds_read_b96", "ds_load_b96"},
    {"ds_read_b128", "ds_load_b128"},
    {"ds_read_u8", "ds_load_u8"},
    {"ds_read_i8", "ds_load_i8"},
    {"ds_read_u16", "ds_load_u16"},
    {"ds_read_i16", "ds_load_i16"},
    {"ds_read_u8_d16", "ds_load_u8_d16"},
    {"ds_read_u8_d16_hi", "ds_load_u8_d16_hi"},
    {"ds_read_i8_d16", "ds_load_i8_d16"},
    {"ds_read_i8_d16_hi", "ds_load_i8_d16_hi"},
    {"ds_read_u16_d16", "ds_load_u16_d16"},
    {"ds_read_u16_d16_hi", "ds_load_u16_d16_hi"},
    {"ds_read2_b32", "ds_load_2addr_b32"},
    {"ds_read2_b64", "ds_load_2addr_b64"},
    {"ds_read2st64_b32", "ds_load_2addr_stride64_b32"},
    {"ds_read2st64_b64", "ds_load_2addr_stride64_b64"},
    {"ds_write_b8", "ds_store_b8"},
    {"ds_write_b16", "ds_store_b16"},
    {"ds_write_b8_d16_hi", "ds_store_b8_d16_hi"},
    {"ds_write_b16_d16_hi", "ds_store_b16_d16_hi"},
    {"ds_write_b32", "ds_store_b32"},
    {"ds_write_b64", "ds_store_b64"},
    {"ds_write_b96", "ds_store_b96"},
    {"ds_write_b128", "ds_store_b128"},
    {"ds_write2_b32", "ds_store_2addr_b32"},
    {"ds_write2_b64", "ds_store_2addr_b64"},
    {"ds_write2st64_b32", "ds_store_2addr_stride64_b32"},
    {"ds_write2st64_b64", "ds_store_2addr_stride64_b64"},
    {"ds_wrxchg_rtn_b32", "ds_storexchg_rtn_b32"},
    {"ds_wrxchg_rtn_b64", "ds_storexchg_rtn_b64"},
    // gfx9
    {"v_add_u32", "v_add_nc_u32"},
    {"v_sub_u32", "v_sub_nc_u32"},
    {"v_subrev_u32", "v_subrev_nc_u32"},
    {"v_add_i32", "v_add_nc_i32"},
    {"v_sub_i32", "v_sub_nc_i32"},
    {"v_addc_co_u32", "v_add_co_ci_u32"},
    {"v_subb_co_u32", "v_sub_co_ci_u32"},
    {"v_subbrev_co_u32", "v_subrev_co_ci_u32"},
    {"v_add_u16", "v_add_nc_u16"},
    {"v_sub_u16", "v_sub_nc_u16"},
};

// Names of memory instructions before gfx11, after "global_load_" and so on.
constexpr std::pair<std::string_view, std::string_view> older_loads[] = {
    {"dword", "b32"},
    {"dwordx2", "b64"},
    {"dwordx3", "b96"},
    {"dwordx4", "b128"},
    {"ubyte", "u8"},
    {"sbyte", "i8"},
    {"ushort", "u16"},
    {"sshort", "i16"},
    {"ubyte_d16", "d16_u8"},
    {"ubyte_d16_hi", "d16_hi_u8"},
    {"sbyte_d16", "d16_i8"},
    {"sbyte_d16_hi", "d16_hi_i8"},
    {"short_d16", "d16_b16"},
    {"short_d16_hi", "d16_hi_b16"},
};
constexpr std::pair<std::string_view, std::string_view> older_stores[] = {
    {"dword", "b32"},
    {"dwordx2", "b64"},
    {"dwordx3", "b96"},
    {"dwordx4", "b128"},
    {"byte", "b8"},
    {"short", "b16"},
    {"byte_d16_hi", "d16_hi_b8"},
    {"short_d16_hi", "d16_hi_b16"},
};
// Followed by "_x2" in place of 64 bits.
constexpr std::pair<std::string_view, std::string_view> older_atomics[] = {
    {"add", "add_u"},
    {"sub", "sub_u"},
    {"smin", "min_i"},
    {"smax", "max_i"},
    {"umin", "min_u"},
    {"umax", "max_u"},
    {"and", "and_b"},
    {"or", "or_b"},
    {"xor", "xor_b"},
    {"swap", "swap_b"},
    {"cmpswap", "cmpswap_b"},
};

using Index = std::unordered_map<std::string, const Row*>;

Index index_rows() {
  Index index;
  for (const Row* row : all_rows())
    index[std::string(row->name)] = row;
  auto name = [&](const std::string& other, const std::string& known) {
    index[other] = index.at(known);
  };
  for (auto [other, known] : other_names)
    name(std::string(other), std::string(known));
  for (std::string space : {"global", "scratch"}) {
    for (auto [other, known] : older_loads)
      name((space + "_load_").append(other), (space + "_load_").append(known));
    for (auto [other, known] : older_stores)
      name(
          (space + "_store_").append(other), (space + "_store_").append(known));
  }
  for (auto [other, known] : older_atomics) {
    std::string prefix = "global_atomic_", word(other);
    name(prefix + word, prefix + std::string(known) + "32");
    name(prefix + word + "_x2", prefix + std::string(known) + "64");
  }
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
  auto found = index.find(std::string(name));
  return found == index.end() ? nullptr : found->second;
}

} // namespace rdna
